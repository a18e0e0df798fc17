/* graph-bench completion: scripts for shells, made from the tables of options and of commands. */
#include "cli/commands/commands.h"
#include "cli/options/exit_status.h"
#include "cli/options/message.h"
#include "cli/options/options.h"
#include "cli/options/text.h"

#include <stdio.h>
#include <string.h>

/* What stands for names of files and folders among the words; both shells know actions for them. */
static const char files[] = "FILE", folders[] = "DIRECTORY";

/* Words in small letters that alternatives begin with: "add report" of "add FILE | report FILE". */
static void add_alternatives(const char *usage, gb_text *words)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz";
    if (!strchr(usage, '|'))
        return;
    for (const char *at = usage; at; at = strchr(at, '|')) {
        at += strspn(at, "| ");
        size_t length = strspn(at, letters);
        if (length > 0)
            gb_cli_text_add(words, "%s%.*s", words->length ? " " : "", (int)length, at);
    }
}

/* What may stand where the usage says `argument`: files, folders, or words; "": anything else. */
static void add_values(const char *argument, const char *words, gb_text *values)
{
    gb_cli_text_clear(values);
    if (words)
        gb_cli_text_add(values, "%s", words);
    else if (strstr(argument, "FILE") || strstr(argument, "REPORT"))
        gb_cli_text_add(values, "%s", files);
    else if (strstr(argument, "DIR"))
        gb_cli_text_add(values, "%s", folders);
    else
        add_alternatives(argument, values);
}

static const char *operands_of(const gb_command *command)
{
    static const char *const operands[] = {
            [OPERANDS_NONE] = "", [OPERANDS_FILES] = files, [OPERANDS_FOLDERS] = folders};
    return operands[command->operands];
}

/* ------------------------------------------------------------ bash */

static bool is_short(const gb_command_option *option)
{
    return strlen(option->name) == 1;
}

static void print_bash_command(const gb_command *command)
{
    gb_text first = {0};
    add_alternatives(command->arguments, &first);
    printf("    %s) first='%s' operands='%s' cases='%s' options='--help", command->name,
            gb_cli_text_get(&first), operands_of(command), command->takes_cases ? "1" : "");
    for (const gb_command_option *o = command->options; o && o->name; o++)
        printf(" %s%s%s", is_short(o) ? "-" : "--", o->name,
                o->argument && !is_short(o) ? "=" : "");
    puts("' ;;");
    gb_cli_text_free(&first);
}

/* A line for each option whose values are known. */
static void print_bash_values(const gb_command *command)
{
    gb_text values = {0};
    for (const gb_command_option *o = command->options; o && o->name; o++) {
        add_values(o->argument ? o->argument : "", NULL, &values);
        if (values.length)
            printf("    '%s %s%s') values='%s' ;;\n", command->name, is_short(o) ? "-" : "--",
                    o->name, values.data);
    }
    gb_cli_text_free(&values);
}

static void print_bash_case_options(void)
{
    gb_text values = {0};
    fputs("    if [ \"$cases\" ]; then\n        options+=' ", stdout);
    for (size_t i = 0; i < gb_cli_option_count(); i++)
        if (gb_cli_options[i].group != GROUP_IGNORED)
            printf("--%s%s ", gb_cli_options[i].name, gb_cli_options[i].argument ? "=" : "");
    puts("'\n        case \"$values $option\" in");
    for (size_t i = 0; i < gb_cli_option_count(); i++) {
        const gb_option *o = &gb_cli_options[i];
        add_values(o->argument ? o->argument : "", o->words, &values);
        if (values.length && o->group != GROUP_IGNORED)
            printf("        ' --%s') values='%s' ;;\n", o->name, values.data);
    }
    puts("        esac\n    fi");
    gb_cli_text_free(&values);
}

static void print_bash(void)
{
    const gb_command *command;
    puts("# bash completion of graph-bench; made by \"graph-bench completion bash\"\n"
         "_graph_bench() {\n"
         "    local typed=() last= glued= i n\n"
         "    # Bash cuts \"--option=value\" into three words.\n"
         "    for ((i = 0; i <= COMP_CWORD; i++)); do\n"
         "        last=${COMP_WORDS[i]}\n"
         "        if [[ $last == [=:]* ]]; then\n"
         "            typed[-1]+=$last last= glued=1\n"
         "        elif [ \"$glued\" ]; then\n"
         "            typed[-1]+=$last glued=\n"
         "        else\n"
         "            typed+=(\"$last\")\n"
         "        fi\n"
         "    done\n"
         "    n=${#typed[@]}\n"
         "    local command=${typed[1]-} word=${typed[n - 1]} option= front= values=\n"
         "    local first= operands= cases=1 options= list part\n"
         "    # The option whose value is being typed: --option=VALUE, or -o VALUE.\n"
         "    case $word in\n"
         "    --*=*) option=${word%%=*} front=$option= ;;\n"
         "    *) [[ ${typed[n - 2]} == -? ]] && option=${typed[n - 2]} ;;\n"
         "    esac\n"
         "    case $command in");
    for (unsigned i = 0; (command = gb_cli_command_at(i)); i++)
        print_bash_command(command);
    puts("    esac\n"
         "    case \"$command $option\" in");
    for (unsigned i = 0; (command = gb_cli_command_at(i)); i++)
        print_bash_values(command);
    puts("    esac");
    print_bash_case_options();
    fputs("    list=$operands\n"
          "    if [ \"$front$values\" ]; then\n"
          "        list=$values word=${word#\"$front\"}\n"
          "    elif [[ $word == -* ]]; then\n"
          "        list=$options\n"
          "    elif ((n == 2)); then\n"
          "        list='run",
            stdout);
    for (unsigned i = 0; (command = gb_cli_command_at(i)); i++)
        printf(" %s", command->name);
    printf("'\n"
           "    elif ((n == 3)) && [ \"$first\" ]; then\n"
           "        list=$first\n"
           "    fi\n"
           "    case $list in\n"
           "    %s | %s)\n"
           "        compopt -o filenames\n"
           "        mapfile -t COMPREPLY < <(compgen -A \"${list,,}\" -- \"$word\") ;;\n"
           "    *)\n"
           "        part=${word##*[,+]} # of a list, the last\n"
           "        mapfile -t COMPREPLY < <(compgen -W \"$list\" -P \"${word%%\"$part\"}\" -- "
           "\"$part\") ;;\n"
           "    esac\n"
           "    # What stands in front of the last cut stays as it is.\n"
           "    COMPREPLY=(\"${COMPREPLY[@]/#/$front}\")\n"
           "    front=${typed[n - 1]%%\"$last\"}\n"
           "    COMPREPLY=(\"${COMPREPLY[@]#\"$front\"}\")\n"
           "    if [[ ${COMPREPLY[0]-} == *= ]]; then compopt -o nospace; fi\n"
           "}\n"
           "complete -F _graph_bench graph-bench\n",
            files, folders);
}

/* ------------------------------------------------------------ zsh */

/* Text inside of brackets and single quotes. */
static void print_zsh_text(const char *text)
{
    for (; *text; text++) {
        if (strchr("[]:\\", *text))
            putchar('\\');
        fputs(*text == '\'' ? "'\\''" : (char[]){*text, '\0'}, stdout);
    }
}

/* What completes a value or a word: an action of _arguments. */
static void print_zsh_action(const char *values)
{
    if (strcmp(values, files) == 0)
        fputs("_files", stdout);
    else if (strcmp(values, folders) == 0)
        fputs("_files -/", stdout);
    else if (*values)
        printf("(%s)", values);
}

static void print_zsh_option(
        const char *name, const char *argument, const char *words, const char *help)
{
    bool is_long = strlen(name) > 1;
    gb_text values = {0};
    printf("        '*%s%s%s[", is_long ? "--" : "-", name, argument && is_long ? "=-" : "");
    print_zsh_text(help);
    putchar(']');
    if (argument) {
        putchar(':');
        print_zsh_text(argument);
        putchar(':');
        add_values(argument, words, &values);
        print_zsh_action(gb_cli_text_get(&values));
    }
    puts("'");
    gb_cli_text_free(&values);
}

static void print_zsh_command(const gb_command *command)
{
    gb_text first = {0};
    const char *operands = operands_of(command);
    printf("    %s) options=(%s\n", command->name, command->takes_cases ? "$cases" : "");
    for (const gb_command_option *o = command->options; o && o->name; o++)
        print_zsh_option(o->name, o->argument, NULL, o->help);
    add_alternatives(command->arguments, &first);
    if (first.length)
        printf("        '1:what:(%s)'\n", first.data);
    if (*operands) {
        fputs("        '*:name:", stdout);
        print_zsh_action(operands);
        puts("'");
    }
    puts("        ) ;;");
    gb_cli_text_free(&first);
}

static void print_zsh(void)
{
    const gb_command *command;
    puts("#compdef graph-bench\n"
         "# zsh completion of graph-bench; made by \"graph-bench completion zsh\"\n"
         "_graph_bench() {\n"
         "    local -a commands cases options\n"
         "    commands=(\n"
         "        'run:check and measure graphs'");
    for (unsigned i = 0; (command = gb_cli_command_at(i)); i++) {
        printf("        '%s:", command->name);
        print_zsh_text(command->help);
        puts("'");
    }
    puts("    )\n"
         "    cases=(");
    for (size_t i = 0; i < gb_cli_option_count(); i++) {
        const gb_option *o = &gb_cli_options[i];
        if (o->group != GROUP_IGNORED)
            print_zsh_option(o->name, o->argument, o->words, o->help);
    }
    puts("    )\n"
         "    options=($cases)\n"
         "    if (( CURRENT == 2 )) && [[ $words[2] != -* ]]; then _describe command commands; "
         "return; fi\n"
         "    case $words[2] in");
    for (unsigned i = 0; (command = gb_cli_command_at(i)); i++)
        print_zsh_command(command);
    puts("    esac\n"
         "    # The command is none of the words that it takes.\n"
         "    if [[ $words[2] != -* ]]; then shift words; (( CURRENT-- )); fi\n"
         "    _arguments $options\n"
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
