/** Whether a module has no code, only comments. */
export function isEmpty(path: string): boolean
