/** A few pages to try the pipeline on, with one reference to something that nobody explains. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const PAGES: Readonly<Record<string, string>> = {
  'ratchet.md': `# Ratchets

A ratchet turns one way and never slips back.

**Ratchet**: a wheel with teeth, held by a [[Pawl]].
`,
  'pawl.md': `# Pawls

A pawl is the catch that drops into the teeth of a [[Ratchet]].

**Pawl**: a catch that lets a wheel turn only one way.
`,
  'winch.md': `# Winches

A winch holds its load by a [[Pawl]], and pays out rope by a [[Brake]].

**Winch**: a drum that a rope is wound on.
`,
}

/** Writes the pages into a folder. */
export function writePages(folder: string): void {
  mkdirSync(folder, { recursive: true })
  for (const [name, text] of Object.entries(PAGES)) writeFileSync(join(folder, name), text)
}
