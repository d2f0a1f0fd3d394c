import { flushCompileCache } from "node:module";
import { afterAll } from "vitest";

// A worker is ended before Node would write down what it has compiled, for the next one that loads the same sources.
afterAll(() => flushCompileCache());
