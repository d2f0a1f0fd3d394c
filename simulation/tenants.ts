export const tenant = "simulated";

/** Another tenant of the same store, who knows our numbers, names and secrets. */
export const strangerTenant = "strangers";

/** Its ended runs are archived and deleted. */
export const retainedTenant = "retained";

/** A third tenant, with its own data and a quota. */
export const neighbourTenant = "neighbours";
