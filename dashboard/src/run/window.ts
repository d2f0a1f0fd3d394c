/** Records of a journal that are asked for at once. */
export const windowRows = 200;
