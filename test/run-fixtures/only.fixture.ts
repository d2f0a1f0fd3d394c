import { expect, it } from "vitest";

// biome-ignore lint/suspicious/noFocusedTests: the test command must reject exactly this
it.only("hides the others", () => expect(1).toBe(1));
it("is hidden", () => expect(1).toBe(1));
