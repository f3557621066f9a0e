/** Texts of unknown origin, such as messages of errors, made fit to be stored. */

/** Longer messages are cut, to keep the rows of the ledger small. */
export const MESSAGE_MAX = 4000

/** Cuts a text to the bound and replaces what cannot be stored: lone surrogates and NUL. */
export function toBoundedText(text: string, max = MESSAGE_MAX): string {
  const wellFormed = text.replaceAll(/\p{Surrogate}|\0/gu, '\uFFFD')
  if (wellFormed.length <= max) return wellFormed
  const cut = wellFormed.slice(0, max)
  return `${cut.replace(/\p{Surrogate}$/u, '')}…`
}
