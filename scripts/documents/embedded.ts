/**
 * Modules that hold the text of a file in `specs/`. Programs that are bundled into one file cannot
 * read files of the package, so the package reads the text from these modules.
 */
import { readFileSync } from 'node:fs'

const CHUNK = 90

/** The modules by path: what each holds comes from the file beside it. */
export function embeddedModules(): Record<string, string> {
  const schema = 'specs/postgres/schema.sql'
  const sql = readFileSync(schema, 'utf8')
  // In two modules, so that each is short. Tables and functions come first in the text.
  const cut = sql.indexOf('-- constraint ')
  return {
    'src/stores/postgres/manifest.ts': moduleOf(schema, 'TABLES', sql.slice(0, cut)),
    'src/stores/postgres/manifest-rest.ts': moduleOf(schema, 'REST', sql.slice(cut)),
    'src/runs/journal/schema-texts.ts': [
      moduleOf('specs/schemas/event.schema.json', 'EVENT_SCHEMA', schemaText('event')),
      declarationOf('SNAPSHOT_SCHEMA', schemaText('snapshot')),
    ].join('\n'),
  }
}

/** Without the white space that people need to read it. */
function schemaText(name: string): string {
  return JSON.stringify(JSON.parse(readFileSync(`specs/schemas/${name}.schema.json`, 'utf8')))
}

function moduleOf(source: string, name: string, text: string): string {
  const head = `/** Generated from \`${source}\` by \`npm run docs:generate\`. */\n`
  return head + declarationOf(name, text)
}

function declarationOf(name: string, text: string): string {
  const chunks: string[] = []
  for (let rest = text; rest.length > 0; ) {
    // Quotes and line breaks are escaped, so a chunk is shortened until its literal fits.
    let length = Math.min(CHUNK, rest.length)
    while (literalOf(rest.slice(0, length)).length > CHUNK + 4) length--
    chunks.push(`  ${literalOf(rest.slice(0, length))},`)
    rest = rest.slice(length)
  }
  return `export const ${name} = [\n${chunks.join('\n')}\n].join('')\n`
}

/** Uses the quotes that the formatter prefers: those that need fewer escapes. */
function literalOf(text: string): string {
  const escaped = text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')
  const count = (quote: string) => text.split(quote).length - 1
  const quote = count("'") > count('"') ? '"' : "'"
  return quote + escaped.replaceAll(quote, `\\${quote}`) + quote
}
