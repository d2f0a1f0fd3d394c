import { expect, it } from "vitest";
import { ErrorClasses } from "../../src/agent/error-classes.ts";
import { ModelCallFailed } from "../../src/agent/model-call.ts";
import { decode, encode } from "../../src/base/codec.ts";

class RateLimitError extends Error {
  readonly status = 429;
}

const recorded = (classes: ErrorClasses, error: unknown): Error => {
  const failure = new ModelCallFailed("it failed", classes.faultOf(error, { param: "n" }));
  return classes.revive(decode(encode(failure)) as ModelCallFailed);
};

it("revives the class, the message and the fields that were kept", async () => {
  const classes = new ErrorClasses([async () => ({ RateLimitError, other: 1 })]);
  await classes.load();
  const revived = recorded(classes, Object.assign(new RateLimitError("slow down"), { headers: { secret: 1 } }));
  expect(revived).toBeInstanceOf(RateLimitError);
  expect(revived).toMatchObject({ message: "slow down", status: 429, param: "n" });
  expect(revived).not.toHaveProperty("headers");
});

it("without the class, an error has its name and its fields", async () => {
  const classes = new ErrorClasses([() => Promise.reject(new Error("not installed"))]);
  await classes.load();
  const error = Object.assign(new Error("gone"), { name: "GoneError", status: 410 });
  expect(recorded(classes, error)).toMatchObject({ name: "GoneError", message: "gone", status: 410 });
  expect(recorded(classes, "words")).toMatchObject({ message: "it failed" });
});
