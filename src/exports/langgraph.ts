export type { ValuesOf } from "../langgraph/keys.ts";
export { TapeSaver, type TapeSaverOptions } from "../langgraph/saver.ts";
export { TapeStore, type TapeStoreOptions } from "../langgraph/store.ts";
