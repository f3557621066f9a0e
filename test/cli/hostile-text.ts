// Text that would do something to a terminal, and what must not reach one.

/** A title, a colour, C1 controls, a bell, what turns text around, and what cannot be seen. */
export const EVIL =
  'a\u001b]0;owned\u0007\u001b[31m\u009b31m\u0085\u202eb\u2066\u200b\u2028\r\n\tend\u{e0041}'
/** The same as far as names may hold it. */
export const EVIL_NAME = 'n\u202e\u2066\u200f\u2028x'
/** Everything that must not reach a terminal; lines and columns are the program's own. */
export const HIDDEN = new RegExp(
  [
    '[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u061c\\u200b\\u200e\\u200f',
    '\\u2028-\\u202e\\u2060-\\u2069\\ufeff\\u{e0000}-\\u{e007f}]',
  ].join(''),
  'u',
)
