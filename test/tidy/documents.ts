// Rules about the Markdown documents.
import { dirname, join } from 'node:path/posix'
import type { Rule, SourceFile } from './files.ts'

/** Every document has exactly one title. */
export const oneTitle: Rule = (files) =>
  files.flatMap((file) => {
    const titles = proseLines(file).filter(({ text }) => /^# /.test(text)).length
    return titles === 1 ? [] : `${file.path} has ${titles} titles (lines that begin with "# ")`
  })

/** Every decision record has a number of its own, the same in its file name and its title. */
export const decisionsNumbered: Rule = (files) => {
  const owners = new Map<string, string>()
  return files.flatMap(({ path, text }) => {
    const number = /^docs\/decisions\/(\d{4})-/.exec(path)?.[1]
    if (number === undefined) return []
    const owner = owners.get(number)
    owners.set(number, path)
    return [
      ...(owner === undefined ? [] : [`${path} has the number of ${owner}`]),
      ...(text.startsWith(`# ${number}: `) ? [] : [`${path} does not begin with "# ${number}: "`]),
    ]
  })
}

/** Links to files of the repository lead somewhere; `exists` tells whether a path is there. */
export const linksLeadSomewhere =
  (exists: (path: string) => boolean): Rule =>
  (files) =>
    files.flatMap((file) =>
      proseLines(file).flatMap(({ text, line }) =>
        [...text.matchAll(/\]\(<?([^)>\s]+)>?[^)]*\)|^\[[^\]]+\]:\s*(\S+)/g)]
          .map(([, inline, reference]) => decodeURI(inline ?? reference ?? ''))
          .filter((target) => !/^([a-z][a-z0-9+.-]*:|#)/i.test(target))
          .filter((target) => !exists(pathOf(file, target)))
          .map((target) => `${file.path}:${line}: links to ${target}, which does not exist`),
      ),
    )

/** The path from the root of the repository that a link in a document means. */
function pathOf(file: SourceFile, target: string): string {
  const path = target.replace(/[#?].*$/, '')
  return path.startsWith('/') ? path.slice(1) : join(dirname(file.path), path)
}

/** The lines of a document outside of code blocks, without code in them. */
function proseLines({ text }: SourceFile): { text: string; line: number }[] {
  let fence: string | undefined
  return text.split('\n').flatMap((line, index) => {
    const mark = /^\s*(```+|~~~+)/.exec(line)?.[1]
    if (fence) {
      if (mark?.startsWith(fence)) fence = undefined
      return []
    }
    fence = mark
    return mark ? [] : { text: line.replace(/`[^`]*`/g, ''), line: index + 1 }
  })
}
