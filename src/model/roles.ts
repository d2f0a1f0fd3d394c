/**
 * Who may call what. Each role may do all that the ones before it may, but for two that stand apart: a worker drives
 * runs and may not act as a person, an operator acts as a person and may not drive.
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

/** Whether somebody with this role may do what asks for that one. */
export const mayDo = (role: Role, asked: Role): boolean => grants[role].includes(asked);
