/**
 * Writes the files of `pawl init`. A file that exists is never changed, except that missing scripts
 * are added to `package.json`.
 */
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { CONFIG_NAMES } from '../config-file.ts'
import { UsageInvalid } from '../errors.ts'
import { visible } from '../visible.ts'
import type { Project } from './detect.ts'
import { filesOf, type NewFile, scriptsOf } from './templates.ts'

/** What is done to one file, or to one script of `package.json`. */
export interface Change {
  readonly what: 'file' | 'script'
  readonly name: string
  readonly action: 'create' | 'skip'
  readonly why?: string
}

interface Plan {
  readonly changes: readonly Change[]
  /** Writes what the changes say. */
  readonly write: () => void
}

/** Decides what to write. Writes nothing. */
export function planOf(project: Project): Plan {
  const { folder } = project
  const files = filesOf(project).map((file) => ({ file, why: whyNot(folder, file) }))
  const asked = scriptsOf(project)
  const present = project.package?.value.scripts
  const scripts = typeof present === 'object' && present !== null ? present : {}
  const added = Object.entries(asked).filter(([name]) => !Object.hasOwn(scripts, name))
  const changes: Change[] = [
    ...(project.package === undefined ? [change('file', 'package.json')] : []),
    ...files.map(({ file, why }) => change('file', file.path, why)),
    ...Object.keys(asked).map((name) =>
      change('script', name, Object.hasOwn(scripts, name) ? 'it exists' : undefined),
    ),
  ]
  return {
    changes,
    write: () => {
      mkdirSync(folder, { recursive: true })
      if (added.length > 0) writePackage(project, Object.fromEntries(added))
      for (const { file, why } of files) if (why === undefined) writeNewFile(folder, file)
    },
  }
}

function change(what: Change['what'], name: string, why?: string): Change {
  return why === undefined ? { what, name, action: 'create' } : { what, name, action: 'skip', why }
}

function whyNot(folder: string, { path }: NewFile): string | undefined {
  if (path.startsWith('pawl.config.')) {
    const other = CONFIG_NAMES.find((name) => existsSync(join(folder, name)))
    return other === undefined ? undefined : `${other} exists`
  }
  return existsSync(join(folder, path)) ? 'it exists' : undefined
}

function writeNewFile(folder: string, { path, text }: NewFile): void {
  const target = join(folder, path)
  mkdirSync(dirname(target), { recursive: true })
  try {
    writeFileSync(target, text, { flag: 'wx' })
  } catch (error) {
    throw notWritten(target, error)
  }
}

/** Keeps the order of the fields, the indentation and the end of the file. */
function writePackage({ folder, package: found }: Project, added: object): void {
  const path = join(folder, 'package.json')
  const own = found?.value ?? { name: nameOf(folder), private: true, type: 'module' }
  const indent = /^[\t ]+(?=")/m.exec(found?.text ?? '')?.[0] ?? '  '
  const scripts = { ...(own as { scripts?: object }).scripts, ...added }
  const text = `${JSON.stringify({ ...own, scripts }, null, indent)}\n`
  const draft = join(folder, `.package.json.${process.pid}`)
  try {
    if (found === undefined) writeFileSync(path, text, { flag: 'wx' })
    else {
      // A crash between these leaves the old file whole.
      writeFileSync(draft, text, { flag: 'wx' })
      renameSync(draft, path)
    }
  } catch (error) {
    rmSync(draft, { force: true })
    throw notWritten(path, error)
  }
}

/** npm allows lower case, digits and a few marks in a name. */
function nameOf(folder: string): string {
  const name = basename(folder)
    .toLowerCase()
    .replace(/[^a-z0-9._-]+/g, '-')
  return name.replace(/^[._-]+|[._-]+$/g, '').slice(0, 200) || 'app'
}

function notWritten(path: string, error: unknown): Error {
  const { code } = error as NodeJS.ErrnoException
  if (code === undefined) return error as Error
  const hint = 'Check the folder and its permissions. Files that were written before stay.'
  return new UsageInvalid(`${visible(path)} cannot be written (${code})`, hint)
}
