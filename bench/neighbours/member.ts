import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { setPriority } from "node:os";
import { join } from "node:path";
import type { Order, Report, Role } from "./work.ts";

type Message<S extends Report["say"]> = Extract<Report, { say: S }>;

/** Where a store is found; through a server with a token for each tenant. */
export interface Address {
  readonly url: string;
  readonly tokens?: Readonly<Record<string, string>>;
}

/** A process of the benchmark: see process.ts. */
export class Member {
  readonly pid: number;
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess) {
    this.#child = child;
    this.pid = child.pid ?? 0;
  }

  static async open(role: Role, place: Address, tenant: string, nice = 0): Promise<Member> {
    const args = [role, place.url, tenant, place.tokens?.[tenant] ?? ""];
    const member = new Member(fork(join(import.meta.dirname, "process.ts"), args));
    const opened = member.#onNote("open");
    setPriority(member.pid, nice);
    await opened;
    return member;
  }

  send(order: Order): void {
    this.#child.send(order);
  }

  ask<S extends Report["say"]>(order: Order, say: S): Promise<Message<S>> {
    const answer = this.#onNote(say);
    this.send(order);
    return answer;
  }

  async close(): Promise<void> {
    if (this.#child.exitCode !== null) return;
    const gone = once(this.#child, "exit");
    this.send({ do: "close" });
    await gone;
  }

  #onNote<S extends Report["say"]>(say: S): Promise<Message<S>> {
    return new Promise((resolve, reject) => {
      const over = (settle: () => void): void => {
        this.#child.off("message", receive);
        this.#child.off("exit", gone);
        settle();
      };
      const receive = (report: Report): void => {
        if (report.say === say) over(() => resolve(report as Message<S>));
        else if (report.say === "failed") over(() => reject(new Error(report.error)));
      };
      const gone = (code: number | null): void => over(() => reject(new Error(`a process ended with ${code}`)));
      this.#child.on("message", receive);
      this.#child.on("exit", gone);
    });
  }
}
