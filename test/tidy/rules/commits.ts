import { execFileSync } from "node:child_process";
import { root } from "../files.ts";

export const maxSubject = 72;

/** Subjects of commits after `base`; none where there is no repository, or not this commit in it. */
export function subjectsSince(base: string): string[] {
  try {
    const args = ["log", "--no-merges", "--format=%s", `${base}..HEAD`];
    const output = execFileSync("git", args, { cwd: root, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
    return output.split("\n").filter(Boolean);
  } catch {
    return [];
  }
}

export function commitSubjects(subjects: string[]): string[] {
  return subjects.flatMap((subject) => [
    ...(subject.length > maxSubject
      ? [`"${subject}" has ${subject.length} characters, at most ${maxSubject}; put the rest into the body`]
      : []),
    ...(subject.endsWith(".") ? [`"${subject}" ends with a full stop; leave it out`] : []),
  ]);
}
