require("tap");

throw new Error("while collecting");
