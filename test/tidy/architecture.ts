// Rules about what may stand where in src.
import { dirname, join } from 'node:path/posix'
import { lineAt, type Rule, type SourceFile } from './files.ts'
import { type Found, globalsOf, importsOf, stringsOf } from './syntax.ts'

/**
 * What each folder of src may import beside itself and the folders in it. One with its own arrows
 * does not have those of the folder around it. Nothing may import cli.
 */
const arrows: Record<string, readonly string[]> = {
  core: [],
  environment: ['core'],
  stores: ['core', 'environment'],
  audit: ['core', 'environment', 'stores'],
  doctor: ['core', 'environment', 'stores', 'audit'],
  engine: ['core', 'environment', 'stores', 'doctor'],
  runs: ['core', 'environment', 'stores', 'doctor', 'engine'],
  'runs/journal': ['core', 'environment', 'stores', 'doctor'],
  testing: ['core', 'environment', 'stores', 'audit', 'engine', 'runs'],
  'cli/demo': ['core', 'environment', 'stores', 'engine', 'runs', 'testing'],
  // A replay is one attempt without a store, which the test kit has.
  'cli/replay': ['cli', 'core', 'environment', 'stores', 'audit', 'engine', 'http', 'testing'],
  entries: [
    ...['core', 'environment', 'stores', 'audit', 'engine', 'runs', 'doctor', 'http', 'testing'],
  ],
  http: ['core', 'environment', 'stores', 'audit', 'engine', 'runs', 'doctor'],
  cli: ['core', 'environment', 'stores', 'audit', 'engine', 'runs', 'doctor', 'http'],
}

/** What would make the core depend on when, where or how often it runs. */
const impure = new Set([
  'Date.now',
  'Date()',
  'Math.random',
  'crypto',
  'globalThis',
  'performance',
  'process',
  'queueMicrotask',
  'setImmediate',
  'setInterval',
  'setTimeout',
])

const sqlStatement =
  /(SELECT .+ FROM|INSERT INTO|UPDATE .+ SET|DELETE FROM|CREATE (UNIQUE )?(TABLE|INDEX)) /
/** In lower case only at the beginning of a string, since the words occur in prose as well. */
const sqlInAnyCase = new RegExp(`^ ?${sqlStatement.source}`, 'i')

/** Files that only one of the two stores has. */
const unpairedStoreFiles = [
  'answer.ts',
  'catalogue.ts',
  'clock.ts',
  'disk-room.ts',
  'examination.ts',
  'file-guard.ts',
  'give-way.ts',
  'hosts.ts',
  'listen.ts',
  'statements/job-types.ts',
  'manifest.ts',
  'manifest-rest.ts',
  'settling.ts',
  'open.ts',
  'replication.ts',
  'runner.ts',
  'troubles.ts',
]

/** Imports between the folders of src go along the arrows. */
export const importDirection: Rule = (files) =>
  files.filter(inSource).flatMap((file) =>
    report(file, importsOf(file), ({ text }) => {
      if (/^pawl($|\/)/.test(text)) return 'imports the package by its own name'
      if (!text.startsWith('.')) return undefined
      const target = join(dirname(file.path), text)
      const [from, to] = [folderOf(file.path), folderOf(target)]
      if (!target.startsWith('src/')) return `imports ${target}, which is not shipped`
      if (from === undefined) return to === 'cli' ? 'imports cli' : undefined
      if (!arrows[from]) return `stands in src/${from}, for which no arrows are declared`
      const allowed = [from, ...arrows[from]]
      if (allowed.some((folder) => to === folder || to?.startsWith(`${folder}/`))) return undefined
      return `src/${from} may not import ${target}`
    }),
  )

/** The contract of stores imports neither database, nor the verbs that are written on it. */
export const neutralContract: Rule = (files) =>
  files
    .filter(({ path }) => path.startsWith('src/stores/contract/') && inSource({ path }))
    .flatMap((file) =>
      report(file, importsOf(file), ({ text }) => {
        const target = join(dirname(file.path), text)
        return /^src\/stores\/(sqlite|postgres|verbs)\//.test(target)
          ? `imports ${target} into the contract of stores`
          : undefined
      }),
    )

/** The core imports itself alone and knows no clock, chance, timer or process. */
export const pureCore: Rule = (files) =>
  files
    .filter(({ path }) => path.startsWith('src/core/') && inSource({ path }))
    .flatMap((file) => [
      ...report(file, importsOf(file), ({ text }) =>
        text.startsWith('.') ? undefined : `imports ${text} into the core`,
      ),
      ...report(file, globalsOf(file), ({ text }) =>
        impure.has(text) ? `uses ${text} in the core` : undefined,
      ),
    ])

/** SQL is written in the stores alone; demos play users, who have tables of their own. */
export const sqlInStores: Rule = (files) =>
  files
    .filter((file) => inSource(file) && !/^src\/(stores|cli\/demo)\//.test(file.path))
    .flatMap((file) =>
      report(file, stringsOf(file), ({ text }) => {
        const line = text.replace(/\s+/g, ' ')
        const isSql = sqlStatement.test(line) || sqlInAnyCase.test(line)
        return isSql ? 'writes SQL outside the stores' : undefined
      }),
    )

/**
 * Statements name lanes (`LANES`) and fact kinds (`FACT_CODES`). Migrations write their numbers,
 * because names may change later, and the manifest is generated from them.
 */
export const namedCodes: Rule = (files) =>
  files
    .filter(({ path }) => /^src\/stores\/(?!.*(\/migrations\/|\/manifest(-rest)?\.ts$))/.test(path))
    .flatMap((file) =>
      report(file, stringsOf(file), ({ text }) =>
        /\b(lane|kind) *(=|<>|<|>|IN) *\(?\d/i.test(text)
          ? 'writes a lane or a fact kind as a number'
          : undefined,
      ),
    )

/** Every folder of src is described in the document of the architecture. */
export const foldersDescribed =
  (architecture: string): Rule =>
  (files) => {
    const folders = files.flatMap(({ path }) => foldersAbove(path))
    return [...new Set(folders)]
      .filter((folder) => !architecture.includes(`${folder}/`))
      .map((folder) => `${folder}/ is not described in docs/internals/architecture.md`)
  }

/** The two stores consist of files with the same names. */
export const storeSymmetry: Rule = (files) => {
  const names = ['sqlite', 'postgres'].map((store) => {
    const folder = `src/stores/${store}/`
    const own = files.filter(({ path }) => path.startsWith(folder) && !path.endsWith('.test.ts'))
    return new Set(own.map(({ path }) => path.slice(folder.length)))
  })
  const [sqlite, postgres] = names
  if (!sqlite?.size || !postgres?.size) return []
  const missing = (store: string, has: Set<string>, other: Set<string>) =>
    [...other]
      .filter((name) => name.endsWith('.ts') && !has.has(name))
      .filter((name) => !unpairedStoreFiles.includes(name))
      .map((name) => `src/stores/${store}/${name} is missing, though the other store has it`)
  return [...missing('sqlite', sqlite, postgres), ...missing('postgres', postgres, sqlite)]
}

function inSource({ path }: Pick<SourceFile, 'path'>): boolean {
  return path.startsWith('src/') && !path.endsWith('.test.ts')
}

/** The folder directly in src to which a path belongs; undefined for files in src itself. */
function folderOf(path: string): string | undefined {
  const inner = /^src\/([^/]+\/[^/]+)\//.exec(path)?.[1] ?? ''
  return inner in arrows ? inner : /^src\/([^/]+)\//.exec(path)?.[1]
}

/** The folders that contain a file, from its own up to those directly in src. */
function foldersAbove(path: string): string[] {
  const folder = dirname(path)
  return folder.startsWith('src/') ? [folder, ...foldersAbove(folder)] : []
}

function report(
  file: SourceFile,
  found: readonly Found[],
  judge: (found: Found) => string | undefined,
): string[] {
  return found.flatMap((item) => {
    const problem = judge(item)
    return problem ? `${file.path}:${lineAt(file.text, item.start)}: ${problem}` : []
  })
}
