/** Removes secrets from texts that people may read: names of stores, and messages of drivers. */

/** `//user:PASSWORD@`, up to the last `@` before the path: a password may hold one unencoded. */
const IN_AUTHORITY = /(\w+:\/\/[^:@/?#\s]*):[^/?#\s]*@/g
/** `password=…` as a parameter of a connection string, or as a word of a message. */
const AS_PARAMETER = /\b((?:ssl)?password=)[^&\s;,]*/gi

/** The text with `***` in place of each password. */
export function withoutSecrets(text: string): string {
  return text.replace(IN_AUTHORITY, '$1:***@').replace(AS_PARAMETER, '$1***')
}
