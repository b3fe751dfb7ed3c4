// Styles are imported for the builder to collect.
declare module "*.css";
