/** The scenarios in which the slots of a queue are verified, and the bugs that they must detect. */
import type { Variant } from "./explore.ts";
import type { SlotRules, SlotScenario } from "./slot-model.ts";

/** One slot: whatever is counted twice or not at all shows at once. */
export const oneSlot: SlotScenario = {
  runs: 2,
  limit: 1,
  workers: 2,
  left: { expiry: 2, crash: 1, drain: 1, cancel: 1 },
};
/** A slot too few: a worker is late or dead while another has room. */
export const twoSlots: SlotScenario = {
  runs: 3,
  limit: 2,
  workers: 2,
  left: { expiry: 1, crash: 1, drain: 0, cancel: 1 },
};

const DRIVEN = "no more runs are driven than the queue has slots";
const COUNTER = "the counter is the number of held slots";
const SLOT = "a driven run has a slot";
const GOAL = "every run can end";

export const SLOT_VARIANTS: readonly Variant<Partial<SlotRules>>[] = [
  {
    name: "admission reads the limit before it locks the queue",
    rules: { limit: "read before the lock" },
    breaks: DRIVEN,
    ends: ["worker 1 sees room", "worker 2 sees room", "worker 1 admits a run", "worker 2 admits a run"],
  },
  {
    name: "an expired lease frees the slot of its holder",
    rules: { expiry: "frees the slot" },
    breaks: DRIVEN,
    ends: ["sender sends a note", "clock expires a late holder", "worker 2 admits a run"],
  },
  {
    name: "an expired lease frees the slot, and its holder still writes",
    rules: { expiry: "frees the slot" },
    breaks: SLOT,
    ends: ["worker 1 admits a run", "clock expires a late holder"],
  },
  {
    name: "a takeover takes a second slot",
    rules: { takeover: "takes a second slot" },
    breaks: COUNTER,
    ends: ["worker 1 admits a run", "clock expires a late holder", "worker 2 takes over a run"],
  },
  {
    name: "a takeover needs a new slot, and the run itself keeps the queue full",
    rules: { takeover: "needs a new slot" },
    breaks: GOAL,
    ends: ["worker 1 admits a run", "worker 1 crashes and restarts"],
  },
  {
    name: "a zombie returns the slot of its successor",
    rules: { release: "unfenced" },
    breaks: SLOT,
    ends: ["clock expires a late holder", "worker 2 takes over a run", "worker 1 returns a slot, unfenced"],
  },
  {
    name: "the slot is returned in a transaction after the record",
    rules: { returned: "in a later transaction" },
    breaks: GOAL,
    ends: ["worker 1 parks the run", "sender sends a note", "worker 1 returns the slot"],
  },
  {
    name: "the end of a run forgets its slot",
    rules: { returned: "not at the end" },
    breaks: "an ended run has no slot",
    ends: ["worker 1 ends the run"],
  },
  {
    name: "a note wakes a parked run past the queue",
    rules: { wake: "past the queue" },
    breaks: SLOT,
    ends: ["worker 1 parks the run", "sender sends a note", "worker 1 continues a run"],
  },
  {
    name: "a run that is cancelled in the queue returns a slot that it never had",
    rules: { cancel: "returns a slot" },
    breaks: COUNTER,
    ends: ["operator cancels a queued run"],
  },
  {
    name: "a run parks without its slot in a queue that counts started runs",
    rules: { counts: "started", parking: "always returns the slot" },
    breaks: "a run that counts as started keeps its slot",
    ends: ["worker 1 admits a run", "worker 1 parks the run"],
  },
];
