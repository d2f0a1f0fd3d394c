import { flushCompileCache } from "node:module";
import { afterAll } from "vitest";

// A worker ends before Node would write its compile cache, which the next worker with the same sources needs.
afterAll(() => flushCompileCache());
