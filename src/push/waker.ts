export type { Waker } from "../reactor/remote.ts";
