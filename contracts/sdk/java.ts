import { copyFileSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { type Generator, matches, named, tours, versions } from './client.ts';
import { generate } from './openapi-generator.ts';
import { find, run, tools } from './shell.ts';

/** By openapi-generator, for the HTTP client of the JDK. */
export const java: Generator = {
  name: 'java',
  async make(place) {
    const program = await find(tools.java);
    const maven = await find(tools.maven);
    const client = path.join(place.folder, 'client');
    const warnings = await generate(place, 'java', client, {
      library: 'native',
      // An absent list stays absent, and is not sent as an empty one.
      containerDefaultToNull: true,
      useSingleRequestParameter: 'static',
      ...{ groupId: 'postline', artifactId: 'postline', invokerPackage: 'postline' },
      ...{ apiPackage: 'postline.api', modelPackage: 'postline.model' },
    });
    const sources = path.join(client, 'src/main/java');
    copyFileSync(path.join(tours, 'java/Tour.java'), path.join(sources, 'Tour.java'));
    place.step('compiling with Maven');
    const classpath = path.join(place.folder, 'classpath.txt');
    const dependencies = `org.apache.maven.plugins:maven-dependency-plugin:${versions['maven-dependency-plugin']}`;
    await run(
      maven,
      [
        ...['-B', '-q', '-DskipTests', 'compile', `${dependencies}:build-classpath`],
        ...[`-Dmdep.outputFile=${classpath}`, '-Dmdep.includeScope=runtime'],
      ],
      { cwd: client, log: place.log, fetches: true },
    );
    const classes = [path.join(client, 'target/classes'), readFileSync(classpath, 'utf8').trim()];
    return {
      types: matches(sources, named('.java', 'model/'), /^public (?:final |abstract )*(?:class|enum) (\w+)/gm),
      operations: matches(sources, named('.java', 'api/'), /^ {2}public [^=;(]{1,80} (\w+)\(/gm),
      warnings,
      tour: { program, args: ['-cp', classes.join(path.delimiter), 'Tour'], cwd: place.folder },
    };
  },
};
