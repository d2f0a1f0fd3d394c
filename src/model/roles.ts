/**
 * The permissions of callers. Each role includes the ones before it, with one exception: a worker drives runs but may
 * not do what operators do, and an operator may not drive runs.
 */
export const roles = ["reader", "starter", "worker", "operator", "admin"] as const;
export type Role = (typeof roles)[number];

const grants: Readonly<Record<Role, readonly Role[]>> = {
  reader: ["reader"],
  starter: ["reader", "starter"],
  worker: ["reader", "starter", "worker"],
  operator: ["reader", "starter", "operator"],
  admin: ["reader", "starter", "worker", "operator", "admin"],
};

/** Whether `role` includes the permissions of `required`. */
export const mayDo = (role: Role, required: Role): boolean => grants[role].includes(required);
