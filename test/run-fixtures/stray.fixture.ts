import { expect, it } from "vitest";

it("passes, but loses an error", async () => {
  void Promise.reject(new Error("nobody waits for this"));
  await new Promise((resolve) => setTimeout(resolve, 10));
  expect(1).toBe(1);
});
