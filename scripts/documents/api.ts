/**
 * `docs/reference/api/`: one page for each entry of the package, from its declarations. A name that
 * several entries export is described on one page, and the others link to it.
 */
import type { ApiEntry, ApiExport } from './api-model.ts'

const FOLDER = 'docs/reference/api'
/** The entry whose page describes a name is the first of these that exports it. */
const HOMES = ['pawl', 'pawl/runs', 'pawl/rules', 'pawl/operators', 'pawl/audit', 'pawl/sqlite']
/** Every error class is described here. */
const ERRORS = 'pawl/errors'

const SECTIONS: readonly [string, readonly ApiExport['kind'][]][] = [
  ['Functions', ['function']],
  ['Classes', ['class']],
  ['Constants', ['const']],
  ['Types', ['interface', 'type']],
]

/** The pages, by their paths. */
export function apiDocuments(entries: readonly ApiEntry[]): Record<string, string> {
  const homes = homesOf(entries)
  const pages = entries.map((entry) => [pathOf(entry.name), pageOf(entry, homes)])
  return { [`${FOLDER}/README.md`]: indexOf(entries), ...Object.fromEntries(pages) }
}

function pathOf(name: string): string {
  return `${FOLDER}/${fileOf(name)}`
}

function fileOf(name: string): string {
  return `${name.replace(/^pawl\//, '')}.md`
}

/** The entry that describes each name. */
function homesOf(entries: readonly ApiEntry[]): ReadonlyMap<string, string> {
  const rank = ({ name }: ApiEntry) => (HOMES.indexOf(name) + HOMES.length + 1) % (HOMES.length + 1)
  const homes = new Map<string, string>()
  for (const entry of [...entries].sort((a, b) => rank(a) - rank(b))) {
    for (const one of entry.exports) if (!homes.has(one.name)) homes.set(one.name, entry.name)
  }
  for (const one of entries.find(({ name }) => name === ERRORS)?.exports ?? []) {
    if (codeOf(one)) homes.set(one.name, ERRORS)
  }
  return homes
}

function indexOf(entries: readonly ApiEntry[]): string {
  return [
    '# What the package exports',
    '',
    'Generated from the declarations of the package. Each entry has a page with every name that it',
    'exports. What no entry exports may change in any release.',
    '',
    '| entry | names | for whom |',
    '|---|---|---|',
    ...entries.map(
      ({ name, exports, says }) =>
        `| [\`${name}\`](${fileOf(name)}) | ${exports.length} | ${says} |`,
    ),
    '',
  ].join('\n')
}

function pageOf(entry: ApiEntry, homes: ReadonlyMap<string, string>): string {
  const isHome = ({ name }: ApiExport) => homes.get(name) === entry.name
  const own = entry.exports.filter(isHome)
  const errors = own.filter((one) => codeOf(one))
  const others = own.filter((one) => !codeOf(one))
  return [
    `# \`${entry.name}\``,
    '',
    `Generated from the declarations of the package. ${entry.says}`,
    '',
    ...elsewhere(
      entry.exports.filter((one) => !isHome(one)),
      homes,
    ),
    ...SECTIONS.flatMap(([title, kinds]) =>
      sectionOf(
        title,
        others.filter(({ kind }) => kinds.includes(kind)),
      ),
    ),
    ...errorsOf(errors),
  ].join('\n')
}

/** Names that this entry exports and another page describes. */
function elsewhere(found: readonly ApiExport[], homes: ReadonlyMap<string, string>): string[] {
  const pages = [...new Set(found.map(({ name }) => homes.get(name) ?? ''))]
  return pages.flatMap((page) => {
    const names = found.filter(({ name }) => homes.get(name) === page)
    const listed = names.map(({ name }) => `\`${name}\``).join(', ')
    return [`Also exported, and described in [\`${page}\`](${fileOf(page)}): ${listed}.`, '']
  })
}

function sectionOf(title: string, found: readonly ApiExport[]): string[] {
  if (found.length === 0) return []
  const texts = found.map(({ kind, declarations, says }) => {
    const text = declarations.map((one) => (kind === 'const' ? `const ${one}` : one)).join('\n')
    return says ? `// ${says}\n${text}` : text
  })
  return [`## ${title}`, '', '```ts', texts.join('\n\n'), '```', '']
}

function errorsOf(found: readonly ApiExport[]): string[] {
  if (found.length === 0) return []
  const rows = found.map((one) => `| \`${one.name}\` | \`${codeOf(one)}\` | ${one.says} |`)
  return ['## Errors', '', '| class | code | when |', '|---|---|---|', ...rows, '']
}

/** The code of an error class; nothing for other names. */
function codeOf({ kind, declarations: [text = ''] }: ApiExport): string | undefined {
  if (kind !== 'class') return undefined
  return /^\s*readonly code = "(E_\w+)"/m.exec(text)?.[1]
}
