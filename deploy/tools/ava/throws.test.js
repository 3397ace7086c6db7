import "ava";

throw new Error("while collecting");
