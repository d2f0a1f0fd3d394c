import { expect, it } from "vitest";

it.each([1, 2])("passes %s", (number) => expect(number).toBeGreaterThan(0));
