// Rules about words: the terms of the glossary, and words that are no longer used.
import { lineAt, type Rule, type SourceFile } from './files.ts'
import { type Found, parse, stringsOf } from './syntax.ts'

/** Every term of the glossary is used in the given files, as a word, in singular or plural. */
export const termsAreUsed =
  (glossary: string): Rule =>
  (files) => {
    const texts = files.map(({ text }) => text.toLowerCase())
    return termsOf(glossary)
      .filter((term) => !texts.some((text) => usageOf(term).test(text)))
      .map((term) => `the glossary defines "${term}", which is not used`)
  }

/** Every term of the glossary is defined once, in one line with a sentence. */
export const termsAreDefinedOnce: Rule = (files) =>
  files.flatMap(({ path, text }) => {
    const terms = termsOf(text)
    const repeated = terms.filter((term, i) => terms.indexOf(term) !== i)
    const unfinished = [...text.matchAll(ROW)].filter(([, , meaning = '']) => !/\.$/.test(meaning))
    return [
      ...repeated.map((term) => `${path} defines "${term}" twice`),
      ...unfinished.map(([, term]) => `${path} does not define "${term}" in a sentence`),
    ]
  })

const ROW = /^\| (?!term \||-)([^|]+?) \| ([^|]+?) \|$/gm

function termsOf(glossary: string): string[] {
  return [...glossary.matchAll(ROW)].map(([, term = '']) => term.toLowerCase())
}

function usageOf(term: string): RegExp {
  const escaped = term.replaceAll(/[^\w ]/g, '\\$&').replaceAll(' ', '[ -]')
  return new RegExp(`\\b${escaped}(s|es)?\\b`)
}

/** Words that are no longer used, with the words to use instead. */
const RETIRED: readonly (readonly [pattern: RegExp, instead: string])[] = [
  [/\bdocuments? 00[0-4]\b|\b00[0-4]'s\b/i, 'R0 to R4'],
  [/\bg(?:i|a)v(?:e|es|en|ing) back\b|\bgive-backs?\b/i, 'release'],
  [/\bkinds? of jobs?\b/i, 'job type'],
  [/\b(?:patient|dossier)s?\b/i, 'StoredJob'],
  [/\b(?:ward|surgery|surgeon|prescription)\b/i, 'CheckContext, RepairAuthor or RepairPlan'],
  [/\bsheaf\b/i, 'PrunedJobs'],
  [/\basker\b/i, 'requester'],
  [/\b(?:whoever|whomever|nobody|anybody|somebody)\b/i, 'the actor'],
  [/\bfor ever\b/i, 'without end'],
  [/\banew\b/i, 'again'],
  [
    /\bdear\b|\bhears\b|\bgives\b|\bstands\b(?! still)/i,
    'a plain verb: returns, throws, writes, waits',
  ],
  [/\b(?:tells?|told) of\b|\btakes? for true\b|\btakes? aside\b/i, 'reports, assumes, sets aside'],
  [/\blets? go\b|\bcomes? of\b|\bbecomes of\b/i, 'releases, results in'],
  [/\b(?:nothing|none) where\b|\bwhere (?:there is|it is) (?:no|none|not)\b/i, 'if'],
]

/** Comments and strings in these folders contain no retired words. Code in backticks may. */
export const noRetiredWords =
  (folders: readonly string[]): Rule =>
  (files) =>
    files
      .filter(({ path }) => folders.some((folder) => path.startsWith(`${folder}/`)))
      .flatMap((file) => proseOf(file).flatMap((prose) => retiredIn(file, prose)))

function retiredIn(file: SourceFile, { text, start }: Found): string[] {
  const prose = text.replaceAll(/`[^`]*`/g, blank)
  return RETIRED.flatMap(([pattern, instead]) => {
    // A phrase may be broken over two lines of a comment.
    const found = new RegExp(pattern.source.replaceAll(' ', ' +'), 'i').exec(prose)
    if (found === null) return []
    const line = lineAt(file.text, start + found.index)
    return `${file.path}:${line}: "${found[0]}" is retired; use ${instead}`
  })
}

/** The comments of a file, without line breaks, and its strings, without import paths. */
function proseOf(file: SourceFile): Found[] {
  const comments = parse(file).comments.map(({ value, start, end }) => ({
    text: `  ${value}`.replaceAll(/\n\s*\*?/g, blank),
    start,
    end,
  }))
  const strings = stringsOf(file).filter(({ text }) => !/^\.\.?\//.test(text))
  return [...comments, ...strings]
}

function blank(text: string): string {
  return ' '.repeat(text.length)
}
