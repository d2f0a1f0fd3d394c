import type { Clients } from "./clients.ts";
import type { PlannedSchedule } from "./plan-others.ts";
import type { programs } from "./program.ts";
import type { Stage } from "./stage.ts";

/** What people did to a schedule: each from when it was asked until it was acknowledged. */
export interface ScheduleStory {
  readonly plan: PlannedSchedule;
  /** Somebody was asked and never answered: what it was asked for may still be done, also after the deletion. */
  loose: boolean;
  readonly did: readonly {
    readonly what: "create" | "pause" | "resume" | "delete";
    readonly from: number;
    to: number;
  }[];
}

/** People who make schedules, pause them, and delete them in the end. */
export class ScheduleClients {
  readonly stories: ScheduleStory[] = [];
  readonly #stage: Stage;
  readonly #clients: Clients;
  readonly #workflows: ReturnType<typeof programs>;

  constructor(stage: Stage, clients: Clients, workflows: ReturnType<typeof programs>) {
    this.#stage = stage;
    this.#clients = clients;
    this.#workflows = workflows;
  }

  everything(): Promise<unknown> {
    return Promise.all(this.#stage.plan.schedules.map((schedule) => this.#keep(schedule)));
  }

  async #keep(plan: PlannedSchedule): Promise<void> {
    const { time, plan: whole } = this.#stage;
    const { rewind } = whole;
    const { id, program, overlap, catchUp, pause } = plan;
    const did: ScheduleStory["did"][number][] = [];
    const story: ScheduleStory = { plan, did, loose: false };
    this.stories.push(story);
    const until = (ms: number): Promise<void> => time.sleep(Math.max(0, ms - time.now));
    const act = async (what: (typeof did)[number]["what"], work: Parameters<Clients["insist"]>[0]): Promise<void> => {
      const one = { what, from: time.wall(), to: Number.POSITIVE_INFINITY };
      did.push(one);
      // A store that went back may have forgotten it.
      let open = 0;
      const counted: typeof work = (tape) => {
        open++;
        return work(tape).finally(() => open--);
      };
      await this.#clients.insist(counted, rewind === undefined ? [] : ["TAPE_SCHEDULE_NOT_FOUND"]);
      if (open > 0) story.loose = true;
      one.to = time.wall();
    };
    await until(plan.atMs);
    const when = { cron: `*/${plan.everySeconds} * * * * *`, catchUpWindow: "1h" } as const;
    const options = { ...when, overlap, catchUp };
    await act("create", (tape) => tape.schedules.create(id, this.#workflows.once, program, options));
    if (pause !== undefined) {
      await until(pause.fromMs);
      await act("pause", (tape) => tape.schedules.pause(id));
      await until(pause.toMs);
      await act("resume", (tape) => tape.schedules.resume(id));
    }
    await until(plan.deleteAtMs);
    await act("delete", (tape) => tape.schedules.delete(id));
    if (rewind === undefined) return;
    await until(rewind.atMs + rewind.awayMs + 1_000);
    await this.#clients.insist((tape) => tape.schedules.delete(id));
  }
}
