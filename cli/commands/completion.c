/* graph-bench completion: scripts for shells, made from the tables of options. */
#include "cli/commands/commands.h"
#include "cli/options/exit_status.h"
#include "cli/options/message.h"
#include "cli/options/options.h"

#include <stdio.h>
#include <string.h>

static void print_bash_words(const gb_command_option *option)
{
    for (; option && option->name; option++) {
        bool is_short = strlen(option->name) == 1;
        printf("%s%s%s ", is_short ? "-" : "--", option->name,
                option->argument && !is_short ? "=" : "");
    }
    fputs("--help", stdout);
}

static void print_bash(void)
{
    const gb_command *command;
    puts("# bash completion of graph-bench; made by \"graph-bench completion bash\"\n"
         "_graph_bench() {\n"
         "    local line=\"${COMP_LINE:0:COMP_POINT}\" word words=\n"
         "    word=${line##* }\n"
         "    case \"$word\" in\n"
         "    *=*) COMPREPLY=($(compgen -f -- \"${word#*=}\")); return ;;\n"
         "    esac\n"
         "    case \"${COMP_WORDS[1]}\" in");
    for (unsigned i = 0; (command = gb_cli_command_at(i)); i++) {
        printf("    %s) words='", command->name);
        print_bash_words(command->options);
        puts("' ;;");
    }
    fputs("    *) words='", stdout);
    for (size_t i = 0; i < gb_cli_option_count(); i++)
        if (gb_cli_options[i].group != GROUP_IGNORED)
            printf("--%s%s ", gb_cli_options[i].name, gb_cli_options[i].argument ? "=" : "");
    puts("' ;;\n    esac");
    fputs("    if [ \"$COMP_CWORD\" -eq 1 ]; then words=\"$words run", stdout);
    for (unsigned i = 0; (command = gb_cli_command_at(i)); i++)
        printf(" %s", command->name);
    puts("\"; fi\n"
         "    COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
         "    case \"${COMPREPLY[0]-}\" in *=) compopt -o nospace ;; esac\n"
         "}\n"
         "complete -o default -F _graph_bench graph-bench");
}

/* Text inside of brackets and single quotes. */
static void print_zsh_text(const char *text)
{
    for (; *text; text++) {
        if (strchr("[]:\\", *text))
            putchar('\\');
        fputs(*text == '\'' ? "'\\''" : (char[]){*text, '\0'}, stdout);
    }
}

static void print_zsh_option(const char *name, const char *argument, const char *help)
{
    bool is_short = strlen(name) == 1;
    bool is_path = argument && (strstr(argument, "FILE") || strstr(argument, "DIR") ||
                                       strstr(argument, "REPORT"));
    printf("        '*%s%s%s[", is_short ? "-" : "--", name, argument && !is_short ? "=" : "");
    print_zsh_text(help);
    putchar(']');
    if (argument) {
        putchar(':');
        print_zsh_text(argument);
        fputs(is_path ? ":_files" : ":", stdout);
    }
    puts("' \\");
}

static void print_zsh(void)
{
    const gb_command *command;
    puts("#compdef graph-bench\n"
         "# zsh completion of graph-bench; made by \"graph-bench completion zsh\"\n"
         "_graph_bench() {\n"
         "    local -a commands\n"
         "    commands=(\n"
         "        'run:check and measure graphs'");
    for (unsigned i = 0; (command = gb_cli_command_at(i)); i++) {
        printf("        '%s:", command->name);
        print_zsh_text(command->help);
        puts("'");
    }
    puts("    )\n"
         "    if (( CURRENT == 2 )) && [[ $words[2] != -* ]]; then _describe command commands; "
         "return; fi\n"
         "    case $words[2] in");
    for (unsigned i = 0; (command = gb_cli_command_at(i)); i++) {
        printf("    %s) _arguments \\\n", command->name);
        for (const gb_command_option *o = command->options; o && o->name; o++)
            print_zsh_option(o->name, o->argument, o->help);
        puts("        '*:file:_files' ;;");
    }
    puts("    *) _arguments \\");
    for (size_t i = 0; i < gb_cli_option_count(); i++)
        if (gb_cli_options[i].group != GROUP_IGNORED)
            print_zsh_option(
                    gb_cli_options[i].name, gb_cli_options[i].argument, gb_cli_options[i].help);
    puts("        '*:file:_files' ;;\n"
         "    esac\n"
         "}\n"
         "_graph_bench \"$@\"");
}

int gb_cli_command_completion(const gb_command *command, int argc, char **argv)
{
    bool bash = argc == 2 && strcmp(argv[1], "bash") == 0;
    if (!bash && (argc != 2 || strcmp(argv[1], "zsh") != 0)) {
        gb_cli_print_error(command->name, "this takes %s", command->arguments);
        return EXIT_USAGE;
    }
    if (bash)
        print_bash();
    else
        print_zsh();
    return fflush(stdout) == 0 && !ferror(stdout) ? EXIT_GOOD : EXIT_UNWRITTEN;
}
