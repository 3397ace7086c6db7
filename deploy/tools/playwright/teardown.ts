export default () => {
  throw new Error("global teardown");
};
