import type { Clients } from "./clients.ts";
import type { PlannedSchedule } from "./plan-actions.ts";
import type { programs } from "./program.ts";
import type { Stage } from "./stage.ts";

/** The actions on a schedule, each from its request to its acknowledgement. */
export interface ScheduleHistory {
  readonly plan: PlannedSchedule;
  /** A call got no response: it may still take effect, even after the deletion. */
  loose: boolean;
  readonly did: readonly {
    readonly what: "create" | "pause" | "resume" | "delete";
    readonly from: number;
    to: number;
  }[];
}

/** Creates schedules, pauses them, and deletes them in the end. */
export class ScheduleClients {
  readonly histories: ScheduleHistory[] = [];
  readonly #stage: Stage;
  readonly #clients: Clients;
  readonly #workflows: ReturnType<typeof programs>;

  constructor(stage: Stage, clients: Clients, workflows: ReturnType<typeof programs>) {
    this.#stage = stage;
    this.#clients = clients;
    this.#workflows = workflows;
  }

  run(): Promise<unknown> {
    return Promise.all(this.#stage.plan.schedules.map((schedule) => this.#follow(schedule)));
  }

  async #follow(plan: PlannedSchedule): Promise<void> {
    const { time, plan: whole } = this.#stage;
    const { rewind } = whole;
    const { id, program, overlap, catchUp, pause } = plan;
    const did: ScheduleHistory["did"][number][] = [];
    const history: ScheduleHistory = { plan, did, loose: false };
    this.histories.push(history);
    const until = (ms: number): Promise<void> => time.sleep(Math.max(0, ms - time.now));
    const perform = async (
      what: (typeof did)[number]["what"],
      work: Parameters<Clients["retry"]>[0],
    ): Promise<void> => {
      const one = { what, from: time.wall(), to: Number.POSITIVE_INFINITY };
      did.push(one);
      // A store that went back may have lost the schedule.
      let open = 0;
      const counted: typeof work = (tape) => {
        open++;
        return work(tape).finally(() => open--);
      };
      await this.#clients.retry(counted, rewind === undefined ? [] : ["TAPE_SCHEDULE_NOT_FOUND"]);
      if (open > 0) history.loose = true;
      one.to = time.wall();
    };
    await until(plan.atMs);
    const when = { cron: `*/${plan.everySeconds} * * * * *`, catchUpWindow: "1h" } as const;
    const options = { ...when, overlap, catchUp };
    await perform("create", (tape) => tape.schedules.create(id, this.#workflows.once, program, options));
    if (pause !== undefined) {
      await until(pause.fromMs);
      await perform("pause", (tape) => tape.schedules.pause(id));
      await until(pause.toMs);
      await perform("resume", (tape) => tape.schedules.resume(id));
    }
    await until(plan.deleteAtMs);
    await perform("delete", (tape) => tape.schedules.delete(id));
    if (rewind === undefined) return;
    await until(rewind.atMs + rewind.awayMs + 1_000);
    await this.#clients.retry((tape) => tape.schedules.delete(id));
  }
}
