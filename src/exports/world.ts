export type { WorldOptions } from "../world/options.ts";
export { createWorld } from "../world/world.ts";
