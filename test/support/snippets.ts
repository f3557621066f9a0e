// The code in documents, cut out and made complete enough to be checked: what a snippet takes from
// Pawl is imported, and what it leaves to the reader is declared as anything.
import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'

/** A block of code in a document. */
export interface Snippet {
  readonly file: string
  readonly line: number
  readonly code: string
}

/** What a compiler says of a snippet. */
interface Complaint {
  readonly snippet: Snippet
  readonly code: string
  readonly text: string
}

/** The blocks of a language in a document. */
export function snippetsIn(file: string, language: string): Snippet[] {
  const text = readFileSync(file, 'utf8')
  const pattern = new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\``, 'gms')
  return [...text.matchAll(pattern)].map((match) => ({
    file,
    line: text.slice(0, match.index).split('\n').length + 1,
    code: match[1] as string,
  }))
}

/** In this order a name that a snippet leaves free is looked for. */
const ENTRIES = {
  pawl: 'dist/index.d.ts',
  ...Object.fromEntries(
    [
      'testing',
      'config',
      'runs',
      'rules',
      'sqlite',
      'postgres',
      'doctor',
      'audit',
      'operators',
      'http',
      'telemetry',
      'errors',
    ].map((name) => [`pawl/${name}`, `dist/entries/${name}.d.ts`]),
  ),
}

const OPTIONS = {
  ...{ module: 'nodenext', target: 'es2022', lib: ['es2023', 'esnext.disposable'] },
  ...{ types: ['node'], noEmit: true, strict: true, noImplicitAny: false, skipLibCheck: true },
}

/** The name of something that a snippet uses and does not declare. */
const MISSING = /^(?:Cannot find name '(\w+)'|No value exists in scope.*property '(\w+)')/
/** Two declarations of one name (alternatives in one block), and type arguments of anything. */
const ALLOWED = ['TS2451', 'TS2300', 'TS2347']
/** What guides call by the same name everywhere. */
const FREE: Readonly<Record<string, string>> = {
  pawl: "import('pawl').Pawl",
  store: "import('pawl/sqlite').Store",
  test: "import('pawl/testing').TestPawl",
}
/** The types of Node 20, which the repository uses, do not have it. */
const GLOBALS = "declare module 'node:sqlite' { export const DatabaseSync: any }"

/** Checks snippets of TypeScript with the types of the built package; what is wrong, per line. */
export function typeErrors(snippets: readonly Snippet[], folder: string): string[] {
  const names = snippets.map(() => new Set<string>())
  // Each pass may find names that earlier errors hid.
  for (let pass = 0; pass < 4; pass++) {
    const complaints = compile(snippets, names, folder)
    const missing = complaints.flatMap(({ snippet, text }) => {
      const [, name, property] = MISSING.exec(text) ?? []
      const found = name ?? property
      return found === undefined ? [] : [{ snippet, name: found }]
    })
    for (const { snippet, name } of missing) names[snippets.indexOf(snippet)]?.add(name)
    if (missing.length > 0) continue
    return complaints
      .filter(({ code }) => !ALLOWED.includes(code))
      .map(({ snippet, text }) => `${snippet.file}:${snippet.line} ${text}`)
  }
  throw new Error('names are missing in every pass')
}

function compile(
  snippets: readonly Snippet[],
  names: readonly ReadonlySet<string>[],
  folder: string,
): Complaint[] {
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  const declared = Object.fromEntries(
    Object.entries(ENTRIES).map(([entry, path]) => [entry, [resolve(path)]]),
  )
  const typeRoots = [resolve('node_modules/@types')]
  const peer = resolve('node_modules/@opentelemetry/api/build/src/index.d.ts')
  const paths = { ...declared, '@opentelemetry/api': [peer] }
  const compilerOptions = { ...OPTIONS, typeRoots, paths }
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions }))
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
  writeFileSync(join(folder, 'globals.d.ts'), GLOBALS)
  for (const [i, { code }] of snippets.entries()) {
    const given = [...(names[i] ?? [])].map(declarationOf).join('\n')
    // A block that begins with a property is a part of a definition.
    const isPart = /^\w+: /.test(code)
    const whole = isPart ? `const part = {\n${code}\n}` : code
    writeFileSync(join(folder, `s${i}.ts`), `${given}\nexport {}\n${whole}\n`)
  }
  return complaintsOf(snippets, folder)
}

/** How a free name is declared: from Pawl if Pawl has it, else as anything. */
function declarationOf(name: string): string {
  if (FREE[name] !== undefined) return `declare const ${name}: ${FREE[name]}`
  const entry = Object.entries(ENTRIES).find(([, path]) => exportsOf(path).has(name))?.[0]
  if (entry !== undefined) return `import { ${name} } from '${entry}'`
  return `declare const ${name}: any; type ${name} = any`
}

/** The names that a module of the package exports. */
function exportsOf(path: string): Set<string> {
  const text = readFileSync(path, 'utf8')
  const all = [...text.matchAll(/export (?:type )?\* from ['"](.+)\.(?:ts|js)['"]/g)].flatMap(
    ([, module = '']) => [...exportsOf(join(dirname(path), `${module}.d.ts`))],
  )
  const lists = [...text.matchAll(/export (?:type )?\{([^}]*)\}/g)].flatMap(([, list = '']) =>
    list.split(',').map((one) =>
      one
        .replace(/^\s*type /, '')
        .replace(/.* as /, '')
        .trim(),
    ),
  )
  const own = [...text.matchAll(/export (?:declare \w+|interface|type) (\w+)/g)].map(
    ([, name = '']) => name,
  )
  return new Set([...lists, ...own, ...all])
}

function complaintsOf(snippets: readonly Snippet[], folder: string): Complaint[] {
  let output = ''
  try {
    execFileSync(resolve('node_modules/.bin/tsc'), ['-p', folder, '--pretty', 'false'])
  } catch (error) {
    output = String((error as { stdout?: unknown }).stdout)
  }
  return [...output.matchAll(/s(\d+)\.ts\(\d+,\d+\): error (TS\d+): (.*)/g)].map(
    ([, i, code = '', text = '']) => ({ snippet: snippets[Number(i)] as Snippet, code, text }),
  )
}
