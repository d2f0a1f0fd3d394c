import type { BlobRef } from "../../src/base/codec.ts";
import { blobsIn } from "../../src/store/validate/blob-refs.ts";
import { digest } from "../models.ts";
import { recordsOf } from "./journal.ts";
import { combine, each, exempt, type Invariant } from "./judge.ts";

/** Each record has its blobs, whole; and the workflow receives the answer of the model, on every replay. */
export const blobsAreWhole: Invariant = (evidence) => {
  const { feed, blobs, models } = evidence;
  const records = each(feed, ({ journal, data }) => {
    const refs: readonly BlobRef[] = blobsIn(data);
    if (refs.length === 0) return exempt;
    return refs.flatMap(({ blob }) => {
      const text = blobs.get(`${journal} ${blob}`);
      if (text === undefined) return [`journal ${journal} refers to a blob that it does not have`];
      return digest(text) === blob ? [] : [`a blob of journal ${journal} has changed`];
    });
  });
  const answers = each(models.answers, ({ run, name, answer }) => {
    const isAnswer = models.calls.some((call) => call.run === run && call.op.name === name && call.answer === answer);
    const others = models.answers.some((one) => one.run === run && one.name === name && one.answer !== answer);
    return isAnswer && !others ? [] : [`${run} received another answer of ${name} than was recorded`];
  });
  return combine([records, answers]);
};

/** A call that a lost term may have made is on the bill before the model is called again. */
export const lostCallsArePresumed: Invariant = (evidence) =>
  each(
    Map.groupBy(evidence.models.calls, ({ run }) => run),
    ([run, calls]) => {
      const journal = evidence.runs.find(({ id }) => id === run)?.journal;
      if (journal === undefined) return exempt;
      const lost = calls.length - new Set(calls.map(({ op }) => op.name)).size;
      const presumed = recordsOf(evidence, journal).filter(({ kind }) => kind === "budget.presumed").length;
      return presumed >= lost ? [] : [`${lost} calls of ${run} were lost, and ${presumed} are presumed`];
    },
  );
