import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { type Generator, matches, named, tours } from './client.ts';
import { generate } from './openapi-generator.ts';
import { find, run, tools } from './shell.ts';

const module = 'postline.example/sdk/postline';

/** By openapi-generator. */
export const go: Generator = {
  name: 'go',
  async make(place) {
    const program = await find(tools.go);
    const client = path.join(place.folder, 'client');
    const warnings = await generate(
      place,
      'go',
      client,
      {
        packageName: 'postline',
        // Answers may get members that this client does not know.
        disallowAdditionalPropertiesIfNotPresent: false,
      },
      ['--git-host', 'postline.example', '--git-user-id', 'sdk', '--git-repo-id', 'postline'],
    );
    const tour = path.join(place.folder, 'tour');
    mkdirSync(tour);
    copyFileSync(path.join(tours, 'go/main.go'), path.join(tour, 'main.go'));
    const needs = `require ${module} v0.0.0\n\nreplace ${module} => ../client\n`;
    writeFileSync(path.join(tour, 'go.mod'), `module tour\n\ngo 1.24\n\n${needs}`);
    const env = { GOFLAGS: '-mod=mod' };
    place.step('go vet and go build');
    await run(program, ['vet', './...'], { cwd: client, log: place.log, env, fetches: true });
    await run(program, ['vet', '.'], { cwd: tour, log: place.log, env, fetches: true });
    await run(program, ['build', '-o', 'tour-program', '.'], { cwd: tour, log: place.log, env });
    return {
      types: matches(client, named('.go', 'model_'), /^type (\w+) /gm).filter((name) => !/^_|^Nullable/.test(name)),
      operations: matches(client, named('.go', 'api_'), /^func \(a \*\w+\) (\w+)\(/gm),
      warnings,
      tour: { program: path.join(tour, 'tour-program'), args: [], cwd: tour },
    };
  },
};
