import { describe, expect, it } from 'vitest'
import { statementsOf } from './sql-statements.ts'

describe('the statements of a text', () => {
  it.each([
    ['select 1', ['select 1']],
    ['  ;; select 1 ; ', ['select 1']],
    ['insert into m values (1); commit; begin', ['insert into m values (1)', 'commit', 'begin']],
    ['-- a; b\nselect 1 /* ; commit */; /* c */ commit', ['select 1', 'commit']],
    [`select 'a; commit', "b; c", \`d; e\``, [`select 'a; commit', "b; c", \`d; e\``]],
    [`select 'it''s; one'; end`, [`select 'it''s; one'`, 'end']],
    [`select E'a\\'; commit'; abort`, [`select E'a\\'; commit'`, 'abort']],
    ['do $$ begin; commit; $$; rollback', ['do $$ begin; commit; $$', 'rollback']],
    ['do $a$ x; $$ y; $a$; commit', ['do $a$ x; $$ y; $a$', 'commit']],
    ['select $1; commit', ['select $1', 'commit']],
    ['select 1 - 2 / 3; commit', ['select 1 - 2 / 3', 'commit']],
    [`select 'unterminated; commit`, [`select 'unterminated; commit`]],
    ['', []],
  ])('%s', (sql, statements) => {
    expect(statementsOf(sql)).toEqual(statements)
  })

  it('leave the body of a trigger in its statement, and nothing that follows it', () => {
    const head = 'CREATE TRIGGER t AFTER INSERT ON m BEGIN INSERT INTO n VALUES (1)'
    expect(statementsOf(`${head}; SELECT 2; END; commit`)).toEqual([head, 'commit'])
    expect(statementsOf(`create table "begin" (a); commit; end`)).toHaveLength(3)
  })

  it('are found in a long text in one pass', () => {
    expect(statementsOf('select 1;'.repeat(20_000))).toHaveLength(20_000)
    expect(statementsOf(`${'('.repeat(100_000)};${'-'.repeat(100_000)}`)).toHaveLength(1)
    expect(statementsOf(`${"'".repeat(100_001)}`)).toHaveLength(1)
  })
})
