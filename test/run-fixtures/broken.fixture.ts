import { it } from "vitest";

it("is never reached", () => {});
throw new Error("this file does not load");
