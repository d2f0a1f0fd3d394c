import { each, exempt, type Invariant } from "./judge.ts";

/** A request fence admits no older token after or beside a newer one, and refuses only older tokens. */
export const requestFencesKeepOrder: Invariant = ({ fenceEvents }) => {
  let [newest, arrived] = [-1n, -1n];
  const inside: bigint[] = [];
  return each(fenceEvents, ({ token, what }) => {
    const faults: string[] = [];
    if (what === "arrived") arrived = token > arrived ? token : arrived;
    if (what === "refused" && token >= arrived) faults.push(`${token} was refused, and no newer token had arrived`);
    if (what === "done") inside.splice(inside.indexOf(token), 1);
    if (what === "admitted") {
      if (token < newest) faults.push(`${token} was admitted after ${newest}`);
      const other = inside.find((one) => one !== token);
      if (other !== undefined) faults.push(`${token} was admitted beside ${other}`);
      inside.push(token);
      newest = token > newest ? token : newest;
    }
    return what === "admitted" || what === "refused" ? faults : exempt;
  });
};
