/** What the pipeline knows about Markdown: pure functions from text to data and back. */

/** A page as it was read. */
export interface Page {
  readonly title: string
  readonly summary: string
  readonly words: number
  /** Terms that it explains: lines of the form `**Term**: meaning`. */
  readonly terms: Readonly<Record<string, string>>
  /** Terms that it refers to: `[[Term]]`. */
  readonly refers: readonly string[]
}

/** Reads a page; one without a title has the name of its file. */
export function readPage(name: string, text: string): Page {
  const title = /^# (.+)$/m.exec(text)?.[1]?.trim() ?? name.replace(/^.*\//, '')
  const paragraphs = text.split(/\n{2,}/).map((part) => part.trim())
  const summary = paragraphs.find((part) => part !== '' && !/^[#*-]/.test(part)) ?? ''
  const terms = [...text.matchAll(/^\*\*(.+?)\*\*: (.+)$/gm)].map(([, term, says]) => [term, says])
  const refers = [...text.matchAll(/\[\[(.+?)\]\]/g)].map(([, term]) => term ?? '')
  return {
    title,
    summary,
    words: text.split(/\s+/).filter(Boolean).length,
    terms: Object.fromEntries(terms),
    refers: [...new Set(refers)].sort(),
  }
}

/** The file name of a section. */
export function slugOf(title: string): string {
  const slug = title
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-|-$/g, '')
  return slug === '' ? 'untitled' : slug
}

/** The draft of a section; references stay open until all sections are known. */
export function draftOf({ title, summary, terms, refers }: Page): string {
  const glossary = Object.entries(terms).map(([term, says]) => `- **${term}**: ${says}`)
  const see = refers.map((term) => `- [[${term}]]`)
  const parts = [`# ${title}`, summary, ...glossary]
  if (see.length > 0) parts.push('## See also', see.join('\n'))
  return `${parts.filter((part) => part !== '').join('\n\n')}\n`
}

/** Makes references links: to the section that explains the term, or to one that is missing. */
export function linkUp(text: string, sections: Readonly<Record<string, string>>): string {
  return text.replaceAll(/\[\[(.+?)\]\]/g, (_, term: string) => {
    const known = Object.hasOwn(sections, term) ? sections[term] : undefined
    return `[${term}](${known ?? slugOf(term)}.md)`
  })
}

/** The links of a page that lead to no section. */
export function brokenLinksOf(text: string, sections: readonly string[]): string[] {
  const targets = [...text.matchAll(/\]\(([^)]+)\.md\)/g)].map(([, target]) => target ?? '')
  return [...new Set(targets)].filter((target) => !sections.includes(target)).sort()
}

/** The page without links that lead nowhere; their words stay. */
export function withoutLinks(text: string, broken: readonly string[]): string {
  return text.replaceAll(/\[([^\]]+)\]\(([^)]+)\.md\)/g, (whole, words: string, target: string) =>
    broken.includes(target) ? `${words} (not written yet)` : whole,
  )
}
