/** The "pull request" of the example: a branch with one commit, in a repository of its own. */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** What is proposed. */
export interface Proposal {
  readonly repository: string
  readonly branch: string
  /** By path in the repository. */
  readonly files: ReadonlyMap<string, string>
  /** The same for every attempt: a commit that has it is there already. */
  readonly key: string
}

const IDENTITY = ['-c', 'user.name=Docs pipeline', '-c', 'user.email=docs@example.org']

/** Proposes files as a branch with one commit, unless that was done before; gives the commit. */
export function propose({ repository, branch, files, key }: Proposal): string {
  const git = (...args: string[]) =>
    execFileSync('git', ['-C', repository, ...IDENTITY, ...args], { encoding: 'utf8' }).trim()
  mkdirSync(repository, { recursive: true })
  if (!existsSync(join(repository, '.git'))) {
    git('init', '--quiet', '--initial-branch=main')
    git('commit', '--quiet', '--allow-empty', '--message', 'Begin')
  }
  const there = git('log', '--all', '--fixed-strings', `--grep=Key: ${key}`, '--format=%H')
  if (there !== '') return there
  git('checkout', '--quiet', '-B', branch, 'main')
  for (const [path, text] of files) {
    const target = join(repository, path)
    mkdirSync(dirname(target), { recursive: true })
    writeFileSync(target, text)
  }
  git('add', '--all')
  git('commit', '--quiet', '--message', `Update the documentation\n\nKey: ${key}`)
  return git('rev-parse', 'HEAD')
}
