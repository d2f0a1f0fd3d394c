import { expect, it } from "vitest";

it("passes", () => expect(1).toBe(1));
it.skip("is left out", () => {});
it.todo("is for later");
it("gives up on the way", (context) => context.skip());
