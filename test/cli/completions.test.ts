// The completion scripts, asked by the real shells.
import { execFileSync, spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { readCommands } from '../../src/cli/commands/index.ts'
import { Place } from './pawl.ts'

const isThere = (shell: string) => spawnSync(shell, ['--version']).status === 0

async function scriptFor(shell: string): Promise<{ file: string; cwd: string }> {
  const place = new Place()
  const file = join(place.folder, `pawl.${shell}`)
  writeFileSync(file, await place.ok('completions', shell))
  writeFileSync(join(place.folder, 'jobs.ts'), '')
  return { file, cwd: place.folder }
}

/** Asks a shell what could follow a line. */
type Asked = (line: string, script: { file: string; cwd: string }) => string[]

const bash: Asked = (line, { file, cwd }) => {
  const words = line.split(' ')
  // Sourced twice, as a shell that starts another one does.
  const text = `source ${file}; source ${file}
    COMP_WORDS=(${words.map((word) => `'${word}'`).join(' ')}); COMP_CWORD=${words.length - 1}
    _pawl; printf '%s\\n' "\${COMPREPLY[@]}"`
  return execFileSync('bash', ['--norc', '-euc', text], { cwd, encoding: 'utf8' })
    .split('\n')
    .filter(Boolean)
}

const fish: Asked = (line, { file, cwd }) => {
  const text = `source ${file}; complete -C "${line}"`
  const said = execFileSync('fish', ['--no-config', '-c', text], { cwd, encoding: 'utf8' })
  return said
    .split('\n')
    .filter(Boolean)
    .map((one) => one.split('\t')[0] ?? '')
}

/** compadd and _describe are replaced: a real menu needs a terminal. */
const zsh: Asked = (line, { file, cwd }) => {
  const words = line.split(' ')
  const text = `
    compdef() { :; }
    compadd() { shift; print -l -- "$@"; }
    _files() { ls; }
    _describe() { print -l -- "\${(@P)2}" | sed 's/:.*//'; }
    source ${file}
    words=(${words.map((word) => `'${word}'`).join(' ')}); CURRENT=${words.length}
    _pawl`
  return execFileSync('zsh', ['-f', '-c', text], { cwd, encoding: 'utf8' })
    .split('\n')
    .filter(Boolean)
}

const shells = { bash, zsh, fish }

describe.each(Object.entries(shells))('completion in %s', (shell, ask) => {
  it.skipIf(!isThere(shell))('offers commands, options, choices and files', async () => {
    const script = await scriptFor(shell)
    const said = (line: string) => ask(line, script)
    expect(said('pawl ')).toEqual(expect.arrayContaining(['init', 'dev', 'job', 'queue', 'doctor']))
    if (shell !== 'zsh') expect(said('pawl de').sort()).toEqual(['demo', 'dev'])
    const commands = await readCommands()
    const verbs = commands.flatMap(({ name }) => name.match(/^job (.*)/)?.[1] ?? [])
    expect(said('pawl job ').sort()).toEqual(verbs.sort())
    // A value of an option before is not taken for a word of the command.
    expect(said('pawl --store x job ').sort()).toEqual(verbs.sort())
    expect(said('pawl job list --')).toEqual(
      expect.arrayContaining(['--lane', '--json', '--store']),
    )
    expect(said('pawl job list --')).not.toContain('--archive')
    expect(said('pawl init --')).toContain('--dry-run')
    expect(said('pawl job list --lane ')).toEqual(expect.arrayContaining(['ready', 'parked']))
    expect(said('pawl work --jobs j').join()).toContain('jobs.ts')
  })
})

it('completion offers every command of the table and every option', async () => {
  const place = new Place()
  const text = await place.ok('completions', 'bash')
  for (const { name, options = [] } of await readCommands()) {
    expect(text).toContain(`'${name.includes(' ') ? name : `${name} `}')`)
    for (const { flags } of options) expect(text).toContain(flags.match(/--[a-z-]+/)?.[0])
  }
  const wrong = await place.run(['completions', 'tcsh'])
  expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining('bash, zsh, fish')])
})
