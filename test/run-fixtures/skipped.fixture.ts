import { expect, it } from "vitest";

it("passes", () => expect(1).toBe(1));
it.skip("is left out", () => {});
it.todo("is for later");
it("skips itself while running", (context) => context.skip());
