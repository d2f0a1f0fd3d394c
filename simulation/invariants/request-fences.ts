import { each, exempt, type Invariant } from "./judge.ts";

/** Behind a door the work of an older term never begins after a newer one's, nor goes on beside it; and only the old are refused. */
export const requestFencesKeepOrder: Invariant = ({ knocks }) => {
  let [newest, came] = [-1n, -1n];
  const inside: bigint[] = [];
  return each(knocks, ({ token, what }) => {
    const faults: string[] = [];
    if (what === "came") came = token > came ? token : came;
    if (what === "refused" && token >= came) faults.push(`${token} was refused, and nobody newer had come`);
    if (what === "out") inside.splice(inside.indexOf(token), 1);
    if (what === "in") {
      if (token < newest) faults.push(`${token} was let in after ${newest}`);
      const other = inside.find((one) => one !== token);
      if (other !== undefined) faults.push(`${token} was let in beside ${other}`);
      inside.push(token);
      newest = token > newest ? token : newest;
    }
    return what === "in" || what === "refused" ? faults : exempt;
  });
};
