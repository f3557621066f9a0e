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

/** A section `## The walk of …` names at most `most` files, each once, and all of them exist. */
export const shortWalks =
  (exists: (path: string) => boolean, most: number): Rule =>
  (files) =>
    files.flatMap(({ path, text }) =>
      [...text.matchAll(/^## (The walk of .+)\n((?:(?!^## ).*\n?)*)/gm)].flatMap(
        ([, title = '', section = '']) => {
          const walk = walkIn(section)
          const where = `${path}: ${title}`
          return [
            ...(walk.length === 0 ? [`${where} names no file`] : []),
            ...(walk.length > most ? [`${where} has ${walk.length} files, more than ${most}`] : []),
            ...walk
              .filter((file, i) => walk.indexOf(file) !== i)
              .map((f) => `${where}: ${f} twice`),
            ...walk.filter((file) => !exists(file)).map((f) => `${where}: ${f} does not exist`),
          ]
        },
      ),
    )

/** The files in the second column of a walk. A bare name is in the folder of the one before it. */
function walkIn(section: string): string[] {
  const walk: string[] = []
  for (const [, cell = ''] of section.matchAll(/^\|[^|]*\|([^|]*)\|/gm)) {
    for (const [, name = ''] of cell.matchAll(/`([^`]+)`/g)) {
      walk.push(name.includes('/') ? name : join(dirname(walk.at(-1) ?? ''), name))
    }
  }
  return walk
}

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
