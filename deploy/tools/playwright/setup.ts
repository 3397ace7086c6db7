export default () => {
  throw new Error("global setup");
};
