import { expect, it } from "vitest";

it("passes, but loses an error", async () => {
  void Promise.reject(new Error("this is never awaited"));
  await new Promise((resolve) => setTimeout(resolve, 10));
  expect(1).toBe(1);
});
