import test from "ava";

export { test };
