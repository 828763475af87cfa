import { deepEqual, equal } from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import path from 'node:path';
import { choicesOf, rules } from '#domain/platforms/registry.ts';
import { imitations } from '#infra/platforms/sandbox/imitations.ts';
import * as sandbox from '#infra/platforms/sandbox/networks.ts';
import { platforms } from '#schemas/common.ts';
import { suite } from '#test/support/suite.ts';

const root = path.resolve(import.meta.dirname, '../../..');
const enumerated = [...platforms].sort();
const entries = (folder: string) => readdirSync(path.join(root, folder), { withFileTypes: true });

suite('registries of networks', (t) => {
  t('exactly the networks of the enum have rules', () => {
    deepEqual(Object.keys(rules).sort(), enumerated);
    for (const platform of platforms) equal(rules[platform].platform, platform);
  });

  t('every network has its rules in one file', () => {
    const files = entries('services/domain/platforms/networks').map(({ name }) => name);
    deepEqual(
      files.sort(),
      enumerated.map((platform) => `${platform}.ts`),
    );
  });

  t('a network is said to take native posts exactly where it has a window and the sandbox a scheduler', () => {
    for (const platform of platforms) {
      const { capabilities, nativeWindow } = rules[platform];
      equal(nativeWindow !== null, capabilities.native, platform);
      equal(imitations[platform].scheduler !== undefined, capabilities.native, platform);
    }
  });

  t('the sandbox tells of each account exactly what the rules of its network say that it does', () => {
    for (const platform of platforms) {
      const { choices = {} } = imitations[platform];
      deepEqual(Object.keys(choices), Object.keys(choicesOf(platform)), platform);
    }
  });

  t('the sandbox says what an account may post exactly where a network is to be asked first', () => {
    for (const platform of platforms) {
      equal(imitations[platform].facts !== undefined, rules[platform].asksFirst === true, platform);
    }
  });

  t('the sandbox imitates every network of the enum, each in one file', () => {
    deepEqual(Object.keys(sandbox).sort(), enumerated);
    const files = entries('infra/platforms/sandbox/networks').map(({ name }) => name);
    deepEqual(
      files.sort(),
      enumerated.map((platform) => `${platform}.ts`),
    );
  });
});
