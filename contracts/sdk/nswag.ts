import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { type Generator, matches, named, tours, versions } from './client.ts';
import { find, run, tools } from './shell.ts';

const project = `<Project Sdk="Microsoft.NET.Sdk">
  <PropertyGroup>
    <OutputType>Exe</OutputType><TargetFramework>net8.0</TargetFramework><RollForward>Major</RollForward>
  </PropertyGroup>
  <ItemGroup><PackageReference Include="Newtonsoft.Json" Version="${versions['Newtonsoft.Json']}" /></ItemGroup>
</Project>
`;

/** C# by NSwag, of the contract as it is served. */
export const nswag: Generator = {
  name: 'nswag',
  async make(place) {
    const dotnet = await find(tools.dotnet);
    const { folder, log } = place;
    const options = { cwd: folder, log };
    const tool = path.join(place.tools, 'nswag');
    place.step(`fetching NSwag ${versions['NSwag.ConsoleCore']}`);
    mkdirSync(tool, { recursive: true });
    const update = ['tool', 'update', '--tool-path', tool, 'NSwag.ConsoleCore'];
    await run(dotnet, [...update, '--version', versions['NSwag.ConsoleCore']], { ...options, fetches: true });
    place.step('generating and compiling');
    const asked = [
      ...[`/input:${place.contract}`, '/output:Client.cs', '/classname:PostlineClient', '/namespace:Postline'],
      // A call names the parameters that it needs; an instant in a query has its zone.
      ...['/generateOptionalParameters:true', '/parameterDateTimeFormat:o'],
    ];
    await run(path.join(tool, 'nswag'), ['openapi2csclient', ...asked], options);
    copyFileSync(path.join(tours, 'nswag/Tour.cs'), path.join(folder, 'Tour.cs'));
    writeFileSync(path.join(folder, 'Postline.csproj'), project);
    await run(dotnet, ['build', '-nologo', '-v', 'quiet', '-o', 'out'], { ...options, fetches: true });
    return {
      types: matches(folder, named('Client.cs'), /public (?:partial class|enum) (\w+)/g),
      operations: matches(folder, named('Client.cs'), / (\w+)Async\(/g),
      warnings: [],
      tour: { program: dotnet, args: [path.join(folder, 'out/Postline.dll')], cwd: folder },
    };
  },
};
