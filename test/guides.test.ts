// Guides show code that compiles and commands that exist.
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { readCommands } from '../src/cli/commands/index.ts'
import { freshFolder } from './processes/folder.ts'
import { type Snippet, snippetsIn, typeErrors } from './support/snippets.ts'

const GUIDES = [
  ...readdirSync('docs/guides')
    .filter((name) => name.endsWith('.md'))
    .map((name) => join('docs/guides', name)),
  'docs/operations/monitoring.md',
]
/** Options that every command has. */
const COMMON = ['--store', '--json', '--verbose', '--help', '--config', '--quiet', '--color']

describe('the guides', () => {
  it('show TypeScript that compiles with the types of the package', { timeout: 120_000 }, () => {
    // The code in the guide of runs is compiled and run by examples.test.ts.
    const checked = GUIDES.filter((file) => !file.endsWith('runs.md'))
    const all = checked.flatMap((file) => snippetsIn(file, 'ts'))
    // A snippet that leaves something out says so with an ellipsis.
    const snippets = all.filter(({ code }) => !code.includes('/* … */'))
    expect(snippets.length).toBeGreaterThan(20)
    expect(typeErrors(snippets, join(freshFolder(), 'snippets'))).toEqual([])
  })

  it('are refused for code that does not compile', { timeout: 120_000 }, () => {
    const bad = { file: 'guide.md', line: 3, code: "defineJob({ name: 'a', retrys: 3 })\n" }
    const [problem, ...more] = typeErrors([bad], join(freshFolder(), 'snippets'))
    expect(problem).toContain('guide.md:3 No overload matches this call')
    expect(more).toEqual([])
  })

  it('show commands that the program has, with options that they take', async () => {
    const files = ['README.md', ...GUIDES]
    const blocks = files.flatMap((file) => ['sh', ''].flatMap((kind) => snippetsIn(file, kind)))
    const lines = blocks.flatMap(commandsIn)
    expect(lines.length).toBeGreaterThan(40)
    const problems = await Promise.all(lines.map(problemOf))
    expect(problems.filter(Boolean)).toEqual([])
  })

  it('are refused for a command or an option that is not there', async () => {
    const shown = { file: 'guide.md', line: 3, code: 'pawl job lst\nnpx pawl job list --bogus 3\n' }
    const problems = await Promise.all(commandsIn(shown).map(problemOf))
    expect(problems).toEqual([
      'guide.md: pawl job lst: there is no such command',
      'guide.md: pawl job list --bogus 3: there is no option --bogus',
    ])
  })
})

/** The calls of the program in a block of a shell. */
function commandsIn({ file, code }: Snippet): { file: string; line: string }[] {
  return code
    .split('\n')
    .map((line) => /^(?:\$ )?(?:npx )?(pawl .*?)(?:\s+(?:#|&$|\|).*)?$/.exec(line)?.[1])
    .flatMap((line) => (line === undefined ? [] : [{ file, line }]))
}

async function problemOf({ file, line }: { file: string; line: string }) {
  const words = line
    .replaceAll(/'[^']*'|"[^"]*"/g, 'TEXT')
    .split(/\s+/)
    .slice(1)
  const commands = await readCommands(words[0])
  const spec = commands.find(({ name }) => {
    const own = name.split(' ')
    return own.every((word, i) => words[i] === word)
  })
  if (spec === undefined) return `${file}: ${line}: there is no such command`
  const known = (spec.options ?? []).flatMap(({ flags }) => flags.match(/--?[\w-]+/g) ?? [])
  const used = words.filter((word) => word.startsWith('--')).map((word) => word.split('=')[0] ?? '')
  const unknown = used.find((option) => ![...known, ...COMMON].includes(option))
  return unknown === undefined ? undefined : `${file}: ${line}: there is no option ${unknown}`
}
